"""Pools that break the clauses on timing and device memory, each one alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from conformance import Pool
from reference_pools import HostCopy, TokenPool
from reference_pools.declarations import make_token


class CopyInFlight(TokenPool):
    unwaited = frozenset({"offload"})


class ReloadInFlight(TokenPool):
    unwaited = frozenset({"reload"})


class ReadsTooEarly(TokenPool):
    """Gathers on a stream of its own, without waiting for those who wrote the rows."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        device = torch.get_device_module(self.device)
        with device.stream(device.Stream()):
            return super().get_cpu_copy(indices, mamba_indices)


class KeepsRows(TokenPool):
    """Remembers the rows of every offload on the device."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        for rows in self.k:
            _kept.append(rows[indices])
        return super().get_cpu_copy(indices, mamba_indices)


class GathersAll(TokenPool):
    """Gathers the whole request before its first chunk."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        whole = [rows[indices] for rows in self.k]
        copy = super().get_cpu_copy(indices, mamba_indices)
        del whole
        return copy


class AlwaysStages(TokenPool):
    """Has a staging buffer of one row, also for nothing."""

    def get_cpu_copy(self, indices: Tensor, mamba_indices: Tensor | None = None) -> HostCopy:
        stage = torch.empty_like(self.k[0][:1])
        copy = super().get_cpu_copy(indices, mamba_indices)
        del stage
        return copy


class ClearsFirst(TokenPool):
    """Zeroes a row of somebody else and puts it back at the end of a reload."""

    def load_cpu_copy(
        self, kv_cache_cpu: HostCopy, indices: Tensor, mamba_indices: Tensor | None = None
    ) -> None:
        before = self.k[0][0].cpu()
        self.k[0][0].zero_()
        super().load_cpu_copy(kv_cache_cpu, indices, mamba_indices)
        self.k[0][0].copy_(before)
        self.wait("reload")


_kept: list[Tensor] = []


def token(cls: type[TokenPool], **declared: Any) -> Pool:
    return Pool("p", partial(make_token, cls=cls), kind="token", level="strict", **declared)


TIMING = {
    "copy_is_complete_on_return": token(CopyInFlight),
    "reload_is_complete_on_return": token(ReloadInFlight),
    "timing_changes_nothing": token(ReadsTooEarly),
    "transfers_leak_nothing": token(KeepsRows),
    "transfer_memory_is_bounded": token(GathersAll),
    "nothing_needs_no_memory": token(AlwaysStages),
    "out_of_memory_changes_nothing": token(ClearsFirst),
}
