"""The workflows of {{name}}."""
