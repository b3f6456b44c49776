"""Scripts to start from; each runs by itself."""
