"""The lines of the README, as they are: they work where nothing but the wheel is installed."""

import re
from pathlib import Path

readme = Path(__file__).parents[1] / "README.md"
[lines] = re.findall(r"```python\n(.*?)```", readme.read_text(), re.DOTALL)
exec(lines)
