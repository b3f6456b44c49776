"""What the scripts above are made of; `jaxdyn reproduce` lists none of it."""
