"""What is true of a stack, a folder for each noun. Facts change nothing and know no face."""
