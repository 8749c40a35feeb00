// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A databaseConfig is one database_config.json: which Redis instance has which
// database, under which number (sonic-swss-common common/dbconnector.cpp).
type databaseConfig struct {
	Namespace string `json:"-"`
	Err       error  `json:"-"` // Why it could not be read.
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

// readDatabaseConfigs reads the configuration of every namespace of the node:
// those that database_global.json lists, or the one of database_config.json
// where there is no such file. One that cannot be read has its error in it.
func readDatabaseConfigs(dir string) ([]databaseConfig, error) {
	data, err := os.ReadFile(filepath.Join(dir, "database_global.json"))
	if errors.Is(err, fs.ErrNotExist) {
		config, err := readDatabaseConfig(filepath.Join(dir, "database_config.json"))
		return []databaseConfig{config}, err
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Includes []include `json:"INCLUDES"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		file.Includes = includesOnDisk(dir)
	}
	var configs []databaseConfig
	for _, i := range file.Includes {
		if i.Container != "" {
			continue // A DPU of a SmartSwitch: a node of its own.
		}
		config, err := readDatabaseConfig(filepath.Join(dir, i.Include))
		config.Namespace, config.Err = i.Namespace, err
		configs = append(configs, config)
	}
	if len(configs) == 0 {
		return nil, fmt.Errorf("%s: %w: no INCLUDES", filepath.Join(dir, "database_global.json"), ErrNotFound)
	}
	return configs, nil
}

// An include is an entry of database_global.json. Its path is relative to that
// file.
type include struct {
	Namespace string `json:"namespace"`
	Container string `json:"container_name"`
	Include   string `json:"include"`
}

// includesOnDisk finds the namespaces by the directories that SONiC makes for
// them. The template of database_global.json leaves out a comma on a switch
// that has both several ASICs and DPUs (sonic-buildimage
// dockers/docker-database/database_global.json.j2).
func includesOnDisk(dir string) []include {
	var includes []include
	paths, _ := filepath.Glob(filepath.Join(dir, "../../redis*/sonic-db/database_config.json")) // The pattern is a good one.
	for _, path := range paths {
		number := strings.TrimPrefix(filepath.Base(filepath.Dir(filepath.Dir(path))), "redis")
		if number != "" && strings.Trim(number, "0123456789") != "" {
			continue // A DPU's, or the chassis'.
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			continue
		}
		i := include{Include: relative}
		if number != "" {
			i.Namespace = "asic" + number
		}
		includes = append(includes, i)
	}
	return includes
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
		if database.Separator == "" {
			return config, fmt.Errorf("%s: database %s has no separator", path, name)
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
