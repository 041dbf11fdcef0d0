"""Load a project as a code location does; print the CPU-seconds beyond `import dagster`."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

import dagster  # noqa: F401 - the measurement starts after it
from dagster._core.remote_representation.external_data import RepositorySnap

before = time.process_time()

from platform_assets.build import build_definitions  # noqa: E402
from platform_assets.project import load_project  # noqa: E402

imported = time.process_time()
project = load_project(Path(sys.argv[1]))
assert not project.errors, project.errors[:3]
repository = build_definitions(project).get_repository_def()
without_jobs = time.process_time()
repository.get_all_jobs()
seconds = time.process_time() - before
RepositorySnap.from_def(repository, defer_snapshots=True)
figures = {
    "seconds": seconds,
    "imports": imported - before,
    "without_jobs": without_jobs - before,
    "snapshot": time.process_time() - before - seconds,
}
print(json.dumps(figures))
