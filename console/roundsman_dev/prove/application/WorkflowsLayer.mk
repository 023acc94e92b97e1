# What `sam build` runs for the layer of the proof: its package, which needs no library of its own.
.PHONY: build-WorkflowsLayer
build-WorkflowsLayer:
	mkdir -p "$(ARTIFACTS_DIR)/python"
	cp -R proof "$(ARTIFACTS_DIR)/python/"
