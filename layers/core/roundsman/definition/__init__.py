"""What an author defines: workflows, their plans as stored, expressions and input types. No I/O."""
