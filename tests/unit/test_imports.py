"""No module of the product needs itself, however far around: late imports and those for types count, too."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = grimp.build_graph("partitions", "resources", "platform_assets", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from error
