"""Shared test helpers: small machines and studies, random problems, and slow, obvious reference implementations."""
