"""The commands of `cas`: a module is imported when one of its commands is named."""
