"""What AWS says of a deployed stack: outputs, resources, metrics, versions, rows of its tables."""
