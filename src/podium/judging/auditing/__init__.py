"""Whether a model may judge in the place of people: a blind sample, and what it says."""
