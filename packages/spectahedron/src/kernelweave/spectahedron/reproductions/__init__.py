"""Published measurements on many samples, as tables of the ``kernelweave tables`` command."""
