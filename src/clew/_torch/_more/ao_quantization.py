"""Names of what would watch or round the values of modules."""

from __future__ import annotations

from clew._torch.absent import _QUANTIZED, absent

for _name in """
FakeQuantize FusedMovingAvgObsFakeQuantize HistogramObserver MinMaxObserver
MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver
PerChannelMinMaxObserver PlaceholderObserver QConfigMapping RecordingObserver
default_dynamic_quant_observer default_fake_quant default_histogram_observer default_observer
default_per_channel_weight_observer default_placeholder_observer default_qat_qconfig
default_qconfig default_weight_fake_quant default_weight_observer disable_fake_quant
disable_observer enable_fake_quant enable_observer float16_dynamic_qconfig
float_qparams_weight_only_qconfig fuse_modules_qat get_default_qat_qconfig_mapping
get_default_qconfig_mapping per_channel_dynamic_qconfig prepare_dynamic propagate_qconfig_
quantize_qat swap_module
""".split():
    globals()[_name] = absent("ao.quantization", _name, _QUANTIZED)
