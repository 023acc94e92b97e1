"""The JSON documents that verbs print, by what they are about."""
