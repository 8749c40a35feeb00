// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A databaseConfig is one database_config.json: which Redis instance has which
// database, under which number (sonic-swss-common common/dbconnector.cpp).
type databaseConfig struct {
	Namespace string `json:"-"`
	Instances map[string]struct {
		Hostname string `json:"hostname"`
		Port     int    `json:"port"`
		Socket   string `json:"unix_socket_path"`
	} `json:"INSTANCES"`
	Databases map[string]struct {
		ID        int    `json:"id"`
		Separator string `json:"separator"`
		Instance  string `json:"instance"`
	} `json:"DATABASES"`
}

// readDatabaseConfigs reads the configuration of every namespace of the node
// from database_global.json, or where there is none from database_config.json.
// The first is the host's.
func readDatabaseConfigs(dir string) ([]databaseConfig, error) {
	global := filepath.Join(dir, "database_global.json")
	data, err := os.ReadFile(global)
	if err != nil {
		if !os.IsNotExist(err) {
			return nil, err
		}
		config, err := readDatabaseConfig(filepath.Join(dir, "database_config.json"))
		if err != nil {
			return nil, err
		}
		return []databaseConfig{config}, nil
	}
	var file struct {
		Includes []struct {
			Namespace string `json:"namespace"`
			Container string `json:"container_name"`
			Include   string `json:"include"`
		} `json:"INCLUDES"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", global, err)
	}
	var configs []databaseConfig
	for _, include := range file.Includes {
		if include.Container != "" {
			continue // A DPU of a SmartSwitch: a node of its own.
		}
		config, err := readDatabaseConfig(filepath.Join(dir, include.Include))
		if err != nil {
			return nil, err
		}
		config.Namespace = include.Namespace
		configs = append(configs, config)
	}
	return configs, nil
}

func readDatabaseConfig(path string) (databaseConfig, error) {
	var config databaseConfig
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return config, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err != nil {
		return config, err
	}
	if err := json.Unmarshal(data, &config); err != nil {
		return config, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range Databases() {
		database, ok := config.Databases[name]
		if !ok {
			continue
		}
		if _, ok := config.Instances[database.Instance]; !ok {
			return config, fmt.Errorf("%s: database %s is in instance %q, which is not listed", path, name, database.Instance)
		}
	}
	if len(config.Databases) == 0 {
		return config, fmt.Errorf("%s: no DATABASES", path)
	}
	return config, nil
}

// address is how an instance is reached, for people.
func address(network, addr string, denied bool) string {
	text := strings.TrimSuffix(network, "4") + " " + addr
	if denied {
		text += " (the socket refused this user)"
	}
	return text
}
