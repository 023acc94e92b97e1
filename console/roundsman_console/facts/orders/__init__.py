"""Many orders: filters, lists, counts, and the export."""
