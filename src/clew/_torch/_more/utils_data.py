"""The older part of utils.data: data pipes."""

from __future__ import annotations

from clew._torch.utils.data.datapipes._decorator import functional_datapipe as functional_datapipe
from clew._torch.utils.data.datapipes.datapipe import DataChunk as DataChunk
from clew._torch.utils.data.datapipes.datapipe import IterDataPipe as IterDataPipe
from clew._torch.utils.data.datapipes.datapipe import MapDataPipe as MapDataPipe
