"""Shades of how often lines ran, beside their source."""

from __future__ import annotations

import math

# Shades that can be told apart beside each other.
SHADES = 9
_SHADES_A_DECADE = 2


def shade(count: float, hottest: float) -> int:
    """Return a count's shade: 0 for none, `SHADES` from the hottest to a third of it, one less for each further factor of 3.2."""
    if count <= 0 or hottest <= 0:
        return 0
    return max(1, min(SHADES, SHADES - math.floor(_SHADES_A_DECADE * math.log10(hottest / count))))
