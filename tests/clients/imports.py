"""Imports all modules of the packages that the arguments name."""

import importlib
import pkgutil
import sys

for name in sys.argv[1:]:
    package = importlib.import_module(name)
    modules = [module.name for module in pkgutil.walk_packages(package.__path__, f"{name}.")]
    for module in modules:
        importlib.import_module(module)
    # an empty package imports well
    assert len(modules) > 50, modules
    print(f"ok {len(modules)} modules of {name} are imported")
