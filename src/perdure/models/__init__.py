"""Who answers: the contract of a model, the demo model, and the bridge to providers.

Imports ``protocol`` and ``errors`` only. Provider SDKs are imported on first use.
"""
