"""One module for each library, behind one interface: see `benchmarks.peers.base`."""
