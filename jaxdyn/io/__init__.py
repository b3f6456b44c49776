"""Files and tables to models, and back."""
