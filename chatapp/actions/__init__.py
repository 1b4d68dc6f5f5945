"""The actions of a person, which page, JSON, command line and admin all call."""
