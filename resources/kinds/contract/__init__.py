"""What a kind of watermark is made of: a contract a part, in the module that has its name in each kind's room."""
