"""Checks of a project and an AWS account before a deployment."""
