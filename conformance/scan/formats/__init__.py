"""What a scan and a comparison look like: one pure function a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from conformance.scan.checked import Checked
from conformance.scan.compare import Comparison
from conformance.scan.formats import (
    comparison_json,
    comparison_markdown,
    comparison_table,
    github,
    json,
    markdown,
    sarif,
    table,
)

FORMATS: Mapping[str, Callable[[Checked], str]] = MappingProxyType(
    {
        "table": table.render,
        "json": json.render,
        "sarif": sarif.render,
        "github": github.render,
        "markdown": markdown.render,
    }
)

COMPARISON_FORMATS: Mapping[str, Callable[[Comparison], str]] = MappingProxyType(
    {
        "table": comparison_table.render,
        "json": comparison_json.render,
        "markdown": comparison_markdown.render,
    }
)
