"""What pages draw as SVG: the workflow, the times, charts, and the shape of each state."""
