"""How far a deployment goes, from one order a second to ten thousand: reckoned and simulated."""
