"""Reads the parameters of samconfig.toml with the parser of the SAM CLI. It runs in its environment."""

import pathlib
import tomllib

from samcli.cli.types import CfnParameterOverridesType

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = '{"A2A_TASK_TTL": "7d", "A2A_RATE_TIERS": "gold=1000,free=20"}'

parser = CfnParameterOverridesType()
for folder in (".", "template"):
    config = tomllib.loads((ROOT / folder / "samconfig.toml").read_text())
    for stage in config.keys() - {"version"}:
        given = config[stage]["deploy"]["parameters"]["parameter_overrides"] | {"Settings": SETTINGS}
        assert parser.convert(given, None, None) == given, (folder, stage)
# In a list the parser cuts an object at its first space. So the file has tables.
assert parser.convert([f"Settings={SETTINGS}"], None, None) != {"Settings": SETTINGS}
