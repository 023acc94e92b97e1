"""Makes and changes the files of an application: `roundsman init`, `add` and `upgrade`."""
