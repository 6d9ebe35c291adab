"""What tests of pictures share."""

import pytest
from browser import Browser


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()
