"""The queue: task cards, their order, and which receipts still hold."""
