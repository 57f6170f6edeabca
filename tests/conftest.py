"""How hard hypothesis looks: HYPOTHESIS_PROFILE is `quick`, `ci` (the default) or `long`."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    deadline=None,
    print_blob=True,
    # No verdict may depend on how fast the machine is.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=20)
settings.register_profile("long", settings.get_profile("ci"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
