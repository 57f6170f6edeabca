"""The agents' own programs: what their hook events say, what they may be told, and how they are set up."""
