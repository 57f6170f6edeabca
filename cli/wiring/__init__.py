"""How agents' programs come to know of us: their settings files, changed by as little as can be."""
