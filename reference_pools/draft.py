"""Speculative decoding: a target and a draft model that share their token ids."""

from __future__ import annotations

from torch import Tensor

from reference_pools.base import HostCopy, KVPool, refuse_state
from reference_pools.token import TokenPool


class DraftPairPool(KVPool):
    """Buffers `k` and `v` of the target, `draft_k` and `draft_v` of the draft model.

    A token has the same id in both pools. Both sides travel and move together: with the
    target's alone, drafts are made from another request's rows (sglang 32176).

    Raises `ValueError` where the pools differ in size or page size.
    """

    def __init__(self, target: TokenPool, draft: TokenPool) -> None:
        super().__init__(**target.geometry())
        if (target.size, target.page_size) != (draft.size, draft.page_size):
            raise ValueError(
                f"target has size {target.size} in pages of {target.page_size}, "
                f"draft {draft.size} in pages of {draft.page_size}; both need the same ids"
            )
        self.target = target
        self.draft = draft

    def buffers(self) -> dict[str, list[Tensor]]:
        draft = {f"draft_{name}": layers for name, layers in self.draft.buffers().items()}
        return self.target.buffers() | draft

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        target = self.target.get_cpu_copy(indices, mamba_indices)
        draft = self.draft.get_cpu_copy(indices)
        parts = {"target": target, "draft": draft}
        return HostCopy(self.layout(), len(indices), 0, {}, parts=parts)

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        refuse_state(mamba_indices)
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        self.target.load_cpu_copy(kv_cache_cpu.parts["target"], indices)
        self.draft.load_cpu_copy(kv_cache_cpu.parts["draft"], indices)

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        self.target.move_kv_cache(tgt_loc, src_loc)
        self.draft.move_kv_cache(tgt_loc, src_loc)
