"""``python -m platform_assets.cli`` is ``strandline``."""

from platform_assets.cli.main import main

main()
