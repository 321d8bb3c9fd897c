"""What tests of several files share: small machines and studies, random problems, slow and obvious answers."""
