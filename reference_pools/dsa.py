"""DeepSeek sparse attention: latents, and the index keys that select among them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from reference_pools.base import HostCopy
from reference_pools.mla import MLAPool
from reference_pools.transfer import Chunks, offload_rows, reload_rows

SCALE_BYTES = 4


class DSAPool(MLAPool):
    """`latent`, and `index_k`: uint8 `[pages + 1, page_size * (index_head_dim + 4)]` per layer.

    A row of `index_k` is a page: `page_size` fp8 keys, then `page_size` fp32 scales
    (DeepSeek-V3.2-Exp). Its pages are those of the latents, so the ids of one request must
    run through pages in order, slot after slot; a run may begin and end inside a page.
    """

    def __init__(self, *, index_head_dim: int, **geometry: Any) -> None:
        super().__init__(**geometry)
        self.index_head_dim = index_head_dim
        row_bytes = self.page_size * (index_head_dim + SCALE_BYTES)
        self.index_k = [
            torch.zeros(
                (self.token_rows // self.page_size, row_bytes),
                dtype=torch.uint8,
                device=self.device,
            )
            for _ in range(self.layers)
        ]

    def buffers(self) -> dict[str, list[Tensor]]:
        return {"latent": self.latent, "index_k": self.index_k}

    def token_buffers(self) -> dict[str, list[Tensor]]:
        return {"latent": self.latent}

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        copy = super().get_cpu_copy(indices, mamba_indices=mamba_indices)
        pages, start_slot = self.pages_of(indices)
        index_k = [offload_rows(rows, pages, self.chunk_pages) for rows in self.index_k]
        self.wait("offload_index")
        return replace(copy, start_slot=start_slot, chunks=copy.chunks | {"index_k": index_k})

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        self.check_tokens(indices)
        self.check_copy(kv_cache_cpu, indices)
        pages, start_slot = self.pages_of(indices)
        if start_slot != kv_cache_cpu.start_slot:
            raise ValueError(
                f"copy begins at slot {kv_cache_cpu.start_slot} of a page, "
                f"indices at slot {start_slot}"
            )
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices=mamba_indices)
        for rows, chunks in zip(self.index_k, kv_cache_cpu.chunks["index_k"], strict=True):
            self._reload_pages(rows, pages, chunks, start_slot)
        self.wait("reload_index")

    def move_kv_cache(self, tgt_loc: Tensor, src_loc: Tensor) -> None:
        super().move_kv_cache(tgt_loc, src_loc)
        for rows in self.index_k:
            for part in self.slots(rows):
                part[tgt_loc // self.page_size, tgt_loc % self.page_size] = part[
                    src_loc // self.page_size, src_loc % self.page_size
                ]
        self.wait("move_index")

    @property
    def chunk_pages(self) -> int:
        return max(1, self.chunk_tokens // self.page_size)

    def pages_of(self, indices: Tensor) -> tuple[Tensor, int]:
        """The page ids of a run, and the slot of its first token.

        `ValueError` names the first id that does not follow its predecessor's slot.
        """
        if not len(indices):
            return indices, 0
        run = indices.cpu()
        start_slot = int(run[0]) % self.page_size
        slots = (start_slot + torch.arange(len(run))) % self.page_size
        pages = run // self.page_size
        leads = slots == 0
        leads[0] = True
        follows = (run % self.page_size == slots) & (leads | (pages == pages.roll(1)))
        if not bool(follows.all()):
            at = int(follows.int().argmin())
            raise ValueError(
                f"id {int(run[at])} does not follow {int(run[at - 1])} in its page "
                f"of {self.page_size} rows"
            )
        return pages[leads].to(indices.device), start_slot

    def slots(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Views of page rows `[n, row_bytes]` as keys `[n, page_size, index_head_dim]` and
        scales `[n, page_size, 4]`, both uint8."""
        keys_end = self.page_size * self.index_head_dim
        keys, scales = rows[:, :keys_end], rows[:, keys_end:]
        return (
            keys.view(len(rows), self.page_size, self.index_head_dim),
            scales.view(len(rows), self.page_size, SCALE_BYTES),
        )

    def _reload_pages(self, rows: Tensor, pages: Tensor, chunks: Chunks, start_slot: int) -> None:
        """Whole pages are written, the last one too; slots before the run keep their bytes."""
        if start_slot and len(pages):
            head = [part[pages[0], :start_slot].clone() for part in self.slots(rows)]
        reload_rows(rows, pages, chunks)
        if start_slot and len(pages):
            for part, before in zip(self.slots(rows), head, strict=True):
                part[pages[0], :start_slot] = before
