"""The modules of a project: those in its folder, and the Python files of its ``dataflows`` folder.

Two projects in one process may have modules of the same name. So a Python file of ``dataflows`` is imported
by its path, as ``dataflows.STEM``. Of all other modules, ``sys.modules`` holds those of the project that
was used last.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import RLock
from types import ModuleType

DATAFLOWS = "dataflows"
"""The folder of a project's dataflows, and the package of its Python files."""

Stamp = tuple[int, int, int]
"""The time of change, size and number of a file."""

_LOCK = RLock()
_LOADED: dict[Path, ModuleType] = {}
"""The Python files of ``dataflows`` that this process has loaded, by path."""
_FOLDERS: list[Path] = []
"""The folders of all projects that this process has imported modules of."""
_SET_ASIDE: dict[Path, dict[str, ModuleType]] = {}
"""By project folder: its modules whose names another project's modules have at the moment."""
_STAMPS: dict[Path, dict[Path, Stamp]] = {}
"""By project folder: the files of its modules, as they were when they were imported."""


def import_module(name: str, folder: Path) -> ModuleType:
    """Return a module that a definition names, imported at most once in a process.

    Modules of the checkout and installed ones come before those of the project's folder.

    Args:
        name: the module's name; ``dataflows.STEM`` is a Python file of the project.
        folder: the project's folder.
    """
    with _LOCK:
        _switch_to(folder.resolve())
        package, _, stem = name.rpartition(".")
        path = folder.resolve() / DATAFLOWS / f"{stem}.py"
        if package == DATAFLOWS and path.is_file():
            module = sys.modules[name] = _LOADED.get(path) or _load(path)
            return module
        if name in sys.modules:
            return sys.modules[name]
        try:
            return importlib.import_module(name)
        finally:
            _note_stamps(folder.resolve())


def load_dataflows_file(path: Path) -> ModuleType:
    """Return a Python file of ``dataflows`` as a module; :func:`forget_changed` has it loaded again.

    Args:
        path: ``dataflows/STEM.py`` in a project's folder.
    """
    return import_module(f"{DATAFLOWS}.{path.stem}", path.parent.parent)


def forget_changed(folder: Path) -> None:
    """Have all modules of a project imported anew if the file of any has changed since its import."""
    folder = folder.resolve()
    with _LOCK:
        stamps = _STAMPS.get(folder, {})
        if all(_stamp(path) == stamp for path, stamp in stamps.items()):
            return
        for name, _ in list(own_modules(folder)):
            del sys.modules[name]
        for path in [path for path in _LOADED if path.parent.parent == folder]:
            del _LOADED[path]
        _SET_ASIDE.pop(folder, None)
        del _STAMPS[folder]


def own_modules(folder: Path) -> Iterator[tuple[str, ModuleType]]:
    """Yield the imported modules that lie in a project's folder, by name.

    Args:
        folder: absolute.
    """
    for name, module in list(sys.modules.items()):
        if _is_own(name, module, folder):
            yield name, module


def _is_own(name: str, module: ModuleType, folder: Path) -> bool:
    """Return whether an imported module lies in a project's folder."""
    stem = folder.joinpath(*name.split("."))
    return getattr(module, "__file__", None) in (f"{stem}.py", str(stem / "__init__.py"))


def _switch_to(folder: Path) -> None:
    """Let imports find a project's own modules, not those of the same name of another project."""
    others = [other for other in _FOLDERS if other != folder]
    own_names = {path.stem for path in folder.iterdir()} if others and folder.is_dir() else set()
    namesakes = [name for name in sys.modules if name.partition(".")[0] in own_names]
    for name in namesakes:
        module = sys.modules[name]
        other = next((other for other in others if _is_own(name, module, other)), None)
        if other is not None and module not in _LOADED.values():
            _SET_ASIDE.setdefault(other, {})[name] = sys.modules.pop(name)
    sys.modules.update(_SET_ASIDE.pop(folder, {}))
    _search(folder, others)


def _search(folder: Path, others: Sequence[Path]) -> None:
    """Have modules found in a project's folder, and there before those of other projects."""
    path, others_paths = str(folder), set(map(str, others))
    if folder not in _FOLDERS:
        _FOLDERS.append(folder)
    first_other = next((at for at, entry in enumerate(sys.path) if entry in others_paths), len(sys.path))
    if path in sys.path[:first_other]:
        return
    if path in sys.path:
        sys.path.remove(path)
    sys.path.insert(first_other, path)  # at the end: no module of a project hides one of the product


def _load(path: Path) -> ModuleType:
    """Run a file as a module; a file that fails leaves none behind."""
    importlib.invalidate_caches()  # a module beside it may be new
    name = f"{DATAFLOWS}.{path.stem}"
    before = sys.modules.get(name)
    module = _new_module(name, path)
    sys.modules[name] = _LOADED[path] = module  # dataclasses and pickle look a module up by its name
    try:
        # Without compiled files: they would miss a change of the same size in the same second.
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), vars(module))  # noqa: S102 - the user's own code
    except BaseException:
        del _LOADED[path]
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before
        raise
    finally:
        _note_stamps(path.parent.parent)
        _STAMPS[path.parent.parent][path] = _stamp(path)
    return module


def _new_module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    return importlib.util.module_from_spec(spec)


def _note_stamps(folder: Path) -> None:
    """Remember the files of a project's modules as they are now, unless they are known."""
    stamps = _STAMPS.setdefault(folder, {})
    for _, module in own_modules(folder):
        path = Path(str(module.__file__))
        if path not in stamps:
            stamps[path] = _stamp(path)


def _stamp(path: Path) -> Stamp:
    """Return the stamp of a file; zeros if there is none."""
    try:
        stat = path.stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
