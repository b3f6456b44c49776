"""The algorithms, one folder for each question."""
