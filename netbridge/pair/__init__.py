"""The OpenAMQ pair: two brokers that share no data, of which one accepts applications."""
