"""Tests of Poolwise. A package, so that what they share is found under one name: `tests.helpers`."""
