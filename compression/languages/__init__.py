"""The words by which rules, decisions and refusals are told: one file a language, read as data."""
