"""What the scripts above are made of; `python -m experiments` lists none of it."""
