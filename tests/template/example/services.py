"""What blocks may be given: an agent's credential, certificate and network; keys of the owner."""

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/pay-EoDzbd"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
GIVEN = {
    "Payment.Credential": SECRET,
    "Payment.CredentialKey": KEY,
    "Payment.ServiceCa": "certificates/ca.pem",
    "Payment.Subnets": "subnet-0a1b2c3d,subnet-1a2b3c4d",
    "Payment.SecurityGroups": "sg-0a1b2c3d",
}
OWN_KEYS = {
    "Engine.EncryptionKey": "arn:aws:kms:eu-west-1:123456789012:key/0wn",
    "Engine.FormerEncryptionKey": "arn:aws:kms:eu-west-1:123456789012:key/f0rmer",
}
