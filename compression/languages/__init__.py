"""The words that express rules, decisions and refusals: one data file per language."""
