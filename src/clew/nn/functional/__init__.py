"""Functions of neural networks: activations, convolutions, pooling, norms, attention, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import clew
from clew import _namespace
from clew._ops.distances import pdist as pdist
from clew.nn import grad as grad

from ._attention import multi_head_attention_forward as multi_head_attention_forward
from ._core import *  # noqa: F403
from ._cross_entropy import cross_entropy as cross_entropy
from ._cross_entropy import linear_cross_entropy as linear_cross_entropy
from ._cross_entropy import nll_loss as nll_loss
from ._ctc import ctc_loss as ctc_loss
from ._distance_loss import huber_loss as huber_loss
from ._distance_loss import l1_loss as l1_loss
from ._distance_loss import mse_loss as mse_loss
from ._distance_loss import smooth_l1_loss as smooth_l1_loss
from ._embedding import embedding as embedding
from ._embedding import embedding_bag as embedding_bag
from ._embedding import embedding_renorm_ as embedding_renorm_
from ._fractional_pool import *  # noqa: F403
from ._grid import affine_grid as affine_grid
from ._grid import grid_sample as grid_sample
from ._loss import binary_cross_entropy as binary_cross_entropy
from ._loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from ._loss import gaussian_nll_loss as gaussian_nll_loss
from ._loss import kl_div as kl_div
from ._loss import poisson_nll_loss as poisson_nll_loss
from ._margin import cosine_embedding_loss as cosine_embedding_loss
from ._margin import cosine_similarity as cosine_similarity
from ._margin import hinge_embedding_loss as hinge_embedding_loss
from ._margin import margin_ranking_loss as margin_ranking_loss
from ._margin import multi_margin_loss as multi_margin_loss
from ._margin import multilabel_margin_loss as multilabel_margin_loss
from ._margin import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from ._margin import pairwise_distance as pairwise_distance
from ._margin import soft_margin_loss as soft_margin_loss
from ._margin import triplet_margin_loss as triplet_margin_loss
from ._margin import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from ._pool import *  # noqa: F403
from ._shuffle import *  # noqa: F403
from ._vision import *  # noqa: F403

Tensor = clew.Tensor

if not TYPE_CHECKING:  # else checkers take any name to be there
    __getattr__ = _namespace.module_getattr(__name__, globals())
__dir__ = _namespace.module_dir(globals())
