"""Tools that know neither data nor rules: checks of arguments, words, clocks, Ctrl-C, devices, bit
sets.
"""
