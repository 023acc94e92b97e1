"""Tests of the dead letters that an operator sees."""
