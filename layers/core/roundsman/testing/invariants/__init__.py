"""What must hold of every task at every moment, and the checks that hold it."""
